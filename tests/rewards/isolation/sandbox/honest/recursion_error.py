def endless():
    return endless()


try:
    endless()
except RecursionError:
    pass
else:
    raise AssertionError
