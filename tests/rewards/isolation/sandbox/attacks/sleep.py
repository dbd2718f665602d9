"""Take no time and never end."""

# ends: killed_wall
# unconfined: skip, the limit of time holds at every level
import time

while True:
    time.sleep(1000)
