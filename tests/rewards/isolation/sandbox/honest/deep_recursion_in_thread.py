import sys
import threading


def main():
    def depth(number):
        return 0 if number == 0 else 1 + depth(number - 1)

    assert depth(100_000) == 100_000
    print("the thread is done")


sys.setrecursionlimit(10**7)
threading.stack_size(2**27)
thread = threading.Thread(target=main)
thread.start()
thread.join()
