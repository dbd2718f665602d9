import sys

__import__("__main__").answer = 42


def main():
    assert sys.modules["__main__"].answer == answer == 42  # noqa: F821
    assert len(sys.argv) == 1
    print("called")
    return 0


if __name__ == "__main__":
    sys.exit(main())
