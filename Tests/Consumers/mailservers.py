"""A server each for SMTP and IMAP, over TLS, that take a token by OAUTHBEARER and XOAUTH2 and nothing else."""
import base64, re, socketserver, ssl, threading
from services import Doorkeeper, tls

MESSAGE = b"From: ada@example.com\r\nTo: you@example.com\r\nSubject: greeting\r\nMessage-ID: <1@example.com>\r\n\r\nhello\r\n"


class Line(socketserver.StreamRequestHandler):
    """A protocol of lines: `begin` greets, `line` answers each until it returns False."""

    def handle(self):
        try:
            self.begin()
            while text := self.rfile.readline():
                if self.line(text.decode(errors="replace").rstrip("\r\n")) is False:
                    return
        except (ConnectionError, ssl.SSLError):
            pass  # Who gave up: the client's own test says why.

    def say(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def proves(self, mechanism, response):
        """Whether the SASL response holds the token that is accepted; notes by which mechanism."""
        text = base64.b64decode(response).decode(errors="replace")
        begin = {"OAUTHBEARER": r"n,(?:a=[^,]*)?,\x01(?:[^\x01]*\x01)*?", "XOAUTH2": r"user=[^\x01]+\x01"}[mechanism]
        found = re.fullmatch(begin + r"auth=Bearer ([^\x01]+)\x01\x01", text)
        if self.server.service.door.sees(found and found[1]):
            self.server.service.mechanisms.append(mechanism)
            return True
        return False

    def authenticates(self, mechanism, response):
        """RFC 7628: the reason is a challenge, which the client answers with nothing, and only then it fails."""
        if mechanism not in ("OAUTHBEARER", "XOAUTH2"):
            return False
        if not response:
            self.challenge("")
            response = self.rfile.readline().decode().strip()
        if self.proves(mechanism, response):
            return True
        self.challenge(base64.b64encode(b'{"status":"401"}').decode())
        self.rfile.readline()
        return False


class SMTP(Line):
    def begin(self):
        self.say("220 mail.example.com ESMTP")
        self.known = False

    def challenge(self, text):
        self.say("334 " + text)

    def line(self, text):
        verb, _, rest = text.partition(" ")
        match verb.upper():
            case "EHLO":
                self.say("250-mail.example.com")
                self.say("250 AUTH OAUTHBEARER XOAUTH2")
            case "AUTH":
                mechanism, _, response = rest.partition(" ")
                self.known = self.authenticates(mechanism.upper(), response)
                self.say("235 2.7.0 accepted" if self.known else "535 5.7.8 the token is no good")
            case "MAIL" | "RCPT":
                self.say("250 2.1.0 fine" if self.known else "530 5.7.0 authenticate first")
            case "DATA":
                self.say("354 go on")
                lines = []
                while (line := self.rfile.readline()) not in (b".\r\n", b""):
                    lines.append(line)
                self.server.service.received.append(b"".join(lines))
                self.say("250 2.0.0 taken")
            case "QUIT":
                self.say("221 2.0.0 bye")
                return False
            case _:
                self.say("250 fine")


class IMAP(Line):
    def begin(self):
        self.known = False
        self.say("* OK ready")

    def challenge(self, text):
        self.say("+ " + text)

    def line(self, text):
        tag, _, rest = text.partition(" ")
        verb, _, rest = rest.partition(" ")
        verb = verb.upper()
        if verb == "UID":
            verb, _, rest = rest.partition(" ")
            verb = verb.upper()
        match verb:
            case "CAPABILITY":
                self.say("* CAPABILITY IMAP4rev1 SASL-IR UIDPLUS AUTH=OAUTHBEARER AUTH=XOAUTH2")
            case "AUTHENTICATE":
                mechanism, _, response = rest.partition(" ")
                self.known = self.authenticates(mechanism.upper(), response)
                if not self.known:
                    return self.say(f"{tag} NO [AUTHENTICATIONFAILED] the token is no good")
            case "LOGOUT":
                self.say("* BYE")
                self.say(f"{tag} OK")
                return False
            case "NOOP" | "ID" | "ENABLE":
                pass
            case _ if not self.known:
                return self.say(f"{tag} NO authenticate first")
            case "LIST" | "LSUB":
                # An empty name asks for the delimiter alone.
                name = '""' if rest == '"" ""' else "INBOX"
                self.say(f'* {verb} (\\HasNoChildren) "/" {name}')
            case "NAMESPACE":
                self.say('* NAMESPACE (("" "/")) NIL NIL')
            case "SELECT" | "EXAMINE":
                for line in ["FLAGS (\\Seen \\Deleted)", "1 EXISTS", "0 RECENT", "OK [UIDVALIDITY 7]", "OK [UIDNEXT 2]"]:
                    self.say("* " + line)
                return self.say(f"{tag} OK [READ-WRITE] selected")
            case "STATUS":
                self.say("* STATUS INBOX (MESSAGES 1 RECENT 0 UIDNEXT 2 UIDVALIDITY 7 UNSEEN 1)")
            case "SEARCH":
                self.say("* SEARCH 1")
            case "FETCH":
                self.fetch(rest)
        self.say(f"{tag} OK done")

    def fetch(self, wanted):
        """All that is asked for, in one line, its literal as a whole."""
        parts = [b"UID 1", b"FLAGS ()"]
        if "SIZE" in wanted.upper():
            parts.append(b"RFC822.SIZE %d" % len(MESSAGE))
        if "DATE" in wanted.upper():
            parts.append(b'INTERNALDATE "01-Jan-2026 00:00:00 +0000"')
        body = re.search(r"BODY(?:\.PEEK)?(\[[^\]]*\])", wanted)
        if body:
            text = MESSAGE.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if "HEADER" in body[1] else MESSAGE
            parts.append(b"BODY%s {%d}\r\n%s" % (body[1].encode(), len(text), text))
        self.wfile.write(b"* 1 FETCH (" + b" ".join(parts) + b")\r\n")


class Mail:
    """A mail server of a protocol, whose handler's class finds it in `server.service`."""

    def __init__(self, protocol, files):
        self.door = Doorkeeper()
        self.mechanisms, self.received = [], []
        context = tls(files)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = allow_reuse_address = True
            service = self

            def finish_request(self, request, client):
                try:
                    request = context.wrap_socket(request, server_side=True)
                except OSError:
                    return  # Who does not like our certificate; its own test says so.
                super().finish_request(request, client)

        self.server = Server(("127.0.0.1", 0), protocol)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
