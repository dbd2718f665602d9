"""Take no time and never end."""

# ends: killed_wall
import time

while True:
    time.sleep(1000)
