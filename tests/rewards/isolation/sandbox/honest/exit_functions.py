import atexit
import sys
import threading
import time

atexit.register(print, "at the exit")
threading.Thread(target=lambda: (time.sleep(0.05), print("the thread was waited for"))).start()
sys.stdout.write("without a newline ")
