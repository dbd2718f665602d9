"""So many threads that nothing else gets a turn."""

# ends: killed_threads
import threading
import time

threading.stack_size(1 << 15)
stop = threading.Event()
for _ in range(5000):
    try:
        threading.Thread(target=stop.wait, daemon=True).start()
    except (RuntimeError, MemoryError):
        break
time.sleep(1)
hit(threading.active_count())
