"""Secrets of a known shape, and the search for them in every form that a leak could give them."""
import base64, secrets, string


def rotations(marker):
    """Of any twelve bytes in a row of a canary, eight are one of these two."""
    return [marker, marker[4:] + marker[:4]]


def base64_forms(marker):
    """What the repeated marker looks like in base64, whatever stands before it."""
    found = []
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + marker * 6)
        inside = text[4:20] if shift else text[:16]
        found += [inside, inside.replace(b"+", b"-").replace(b"/", b"_")]
    return found


FORMS = {
    "as it is": lambda m: rotations(m),
    "base64": base64_forms,
    "hexadecimal": lambda m: [c for r in rotations(m) for c in (r.hex().encode(), r.hex().upper().encode())],
    "percent-encoded": lambda m: [
        c for r in rotations(m) for c in (b"".join(b"%%%02x" % b for b in r), b"".join(b"%%%02X" % b for b in r))],
    "UTF-16": lambda m: [c for r in rotations(m) for c in (r.decode().encode("utf-16-le"), r.decode().encode("utf-16-be"))],
    "JSON escapes": lambda m: [
        c for r in rotations(m) for c in (b"".join(b"\\u%04x" % b for b in r), b"".join(b"\\u%04X" % b for b in r))],
    "a list of numbers": lambda m: [
        c for r in rotations(m) for c in (b", ".join(b"%d" % b for b in r), b",".join(b"%d" % b for b in r))],
}


def encoded(text, form):
    """A text in one of the forms, for a server that repeats it, and for a leak that is planted."""
    data = text.encode()
    return {
        "as it is": lambda: text,
        "base64": lambda: base64.b64encode(b"x" + data).decode(),
        "hexadecimal": lambda: data.hex(),
        "percent-encoded": lambda: "".join("%%%02X" % b for b in data),
        "UTF-16": lambda: data.decode("latin-1").encode("utf-16-be").decode("latin-1"),
        "JSON escapes": lambda: "".join("\\u%04x" % b for b in data),
        "a list of numbers": lambda: ", ".join("%d" % b for b in data),
    }[form]()


class Kind:
    """A kind of secret: all of them have its marker in them, five times in a row."""

    def __init__(self, name, prefix=""):
        self.name, self.prefix, self.made = name, prefix, 0
        alphabet = string.ascii_letters + string.digits
        self.marker = "".join(secrets.choice(alphabet) for _ in range(8)).encode()
        self.needles = [(form, needle) for form, make in FORMS.items() for needle in make(self.marker)]

    def make(self):
        """Another secret of this kind."""
        self.made += 1
        return f"{self.prefix}{self.marker.decode() * 5}{self.made:05}"

    def forms_in(self, data):
        """In which forms one of them is in the bytes."""
        return sorted({form for form, needle in self.needles if needle in data})


REFRESH = Kind("refresh token", "crt_")
ACCESS = Kind("access token", "cat_")
PASSWORD = Kind("password", "\"p&<%\\ é")
CODE = Kind("code of a second factor")
CHALLENGE = Kind("challenge", "cht_")
KINDS = [REFRESH, ACCESS, PASSWORD, CODE, CHALLENGE]
