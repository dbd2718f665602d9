"""process_vm_readv, which needs no file."""


class Span(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


target = ctypes.create_string_buffer(8)
local = Span(ctypes.addressof(target), 8)
remote = Span(TRAINER_ADDRESS, 8)
attempt(lambda: libc("process_vm_readv", TRAINER, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0))
