"""Apple's GPUs: not supported yet."""


def is_available():
    """Whether the device can be used."""
    return False


def is_built():
    """Whether flambeau was built with it."""
    return False


def is_macos_or_newer(major, minor):
    """Whether the system is so new a macOS, with such a device."""
    return False


def is_macos13_or_newer(minor=0):
    """Whether the system is macOS 13 or newer, with such a device."""
    return False
