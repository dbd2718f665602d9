import queue
import threading
from concurrent.futures import ThreadPoolExecutor

with ThreadPoolExecutor(16) as pool:
    assert list(pool.map(lambda number: number + 1, range(100))) == list(range(1, 101))

results = queue.Queue()
threads = [threading.Thread(target=results.put, args=(number,)) for number in range(20)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert results.qsize() == 20
