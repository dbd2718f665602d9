"""A thread that the exit waits for."""

# ends: killed_wall
# unconfined: skip, the limit of time holds at every level
import threading

threading.Thread(target=threading.Event().wait).start()
