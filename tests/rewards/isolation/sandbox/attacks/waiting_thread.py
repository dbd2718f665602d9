"""A thread that the exit waits for."""

# ends: killed_wall
import threading

threading.Thread(target=threading.Event().wait).start()
