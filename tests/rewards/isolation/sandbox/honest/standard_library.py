import bisect
import cmath
import collections
import contextlib
import copy
import dataclasses
import datetime
import decimal
import fractions
import functools
import hashlib
import heapq
import io
import itertools
import json
import math
import operator
import os
import pickle
import platform
import random
import re
import secrets
import time
import typing
import uuid
import zlib

assert math.isqrt(17) == 4 and cmath.sqrt(-1) == 1j
assert json.loads(json.dumps({"a": [1, 2.5, None]})) == {"a": [1, 2.5, None]}
assert collections.Counter("abca").most_common(1) == [("a", 2)]
assert heapq.nsmallest(2, [3, 1, 2]) == [1, 2]
assert bisect.bisect([1, 2, 3], 2) == 2
assert functools.reduce(operator.mul, range(1, 6)) == 120
assert list(itertools.permutations("ab")) == [("a", "b"), ("b", "a")]
assert decimal.Decimal("0.1") * 3 == decimal.Decimal("0.3")
assert fractions.Fraction(1, 3) + fractions.Fraction(1, 6) == fractions.Fraction(1, 2)
assert datetime.date(2024, 2, 29) + datetime.timedelta(1) == datetime.date(2024, 3, 1)
assert datetime.datetime.now().year > 2000 and time.time() > 1e9
assert re.sub(r"(\w)\1", r"<\1>", "aab") == "<a>b"
assert random.Random(1).random() == random.Random(1).random() and 0 <= random.random() < 1
assert len(secrets.token_bytes(8)) == 8 and uuid.uuid4().version == 4 and len(os.urandom(4)) == 4
assert hashlib.sha256(b"").hexdigest().startswith("e3b0c442")
assert zlib.decompress(zlib.compress(b"x" * 100)) == b"x" * 100
assert platform.system() == "Linux" and os.cpu_count() >= 1
assert os.path.basename(os.getcwd()) is not None


@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: int = 0


assert Point(1) < Point(2) and pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)
assert copy.deepcopy([Point(1)]) == [Point(1)]
assert typing.get_type_hints(Point)["x"] is int
with contextlib.redirect_stdout(io.StringIO()) as said:
    print("x")
assert said.getvalue() == "x\n"
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    print("unheard")

for name in """
    argparse array ast base64 binascii bz2 calendar cProfile code codecs colorsys concurrent.futures configparser csv
    ctypes difflib dis doctest email fileinput fnmatch gc getpass glob gzip html http.client inspect ipaddress
    linecache locale logging lzma multiprocessing numbers optparse pathlib pdb pkgutil pprint pstats queue reprlib
    sched select selectors shelve shlex shutil signal socket sqlite3 ssl statistics string struct subprocess symtable
    sysconfig tempfile termios textwrap threading timeit token tokenize tomllib trace traceback tracemalloc types
    unicodedata unittest.mock urllib.request warnings wave weakref xml.etree.ElementTree zipfile zoneinfo
""".split():
    __import__(name)
