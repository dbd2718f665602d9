"""Leak through the domain name system."""

# unconfined: skip, there may be no network
import socket

attempt(lambda: socket.getaddrinfo("example.org", 80))
