"""A Canopy whose every secret is a canary, and which repeats, spoils and holds back on request."""
import http.server, json, threading
import canary

ROOT = "/v1/identity/auth"


class Server:
    """On loopback. What `spoil` says of (endpoint, address of the identity) happens to each such request."""

    def __init__(self):
        self.lifetime = 20
        self.spoil = {}
        self.held = threading.Semaphore(0)
        self.release = threading.Event()
        self.seen = []
        self.owners = {}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_): pass

            def handle_one(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                outer.answer(self, body)

            do_GET = do_POST = do_DELETE = handle_one

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_): pass

        self.http = Listener(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    # Answers

    def answer(self, request, raw):
        body = json.loads(raw) if raw else {}
        bearer = (request.headers.get("Authorization") or "").removeprefix("Bearer ")
        endpoint = request.path.removeprefix(ROOT)
        if endpoint.startswith("/sessions/"): endpoint = "/sessions/ID"
        repeated = [bearer] if bearer else []
        repeated += [body[k] for k in ("password", "refresh_token", "code", "challenge_token") if k in body]
        email = body.get("email") or next((self.owners[r] for r in repeated if r in self.owners), "")
        status, value = 200, self.good(endpoint, email, body)
        spoil = self.spoil.get((endpoint, email)) or self.spoil.get((endpoint, "*"))
        # Whoever sees it here may take the spoiling back.
        self.seen.append((endpoint, email))
        headers, data = {}, None
        if value is None: status = 204
        if spoil:
            made = spoil(self, value, repeated)
            if made is None: return  # The connection is closed without an answer.
            status, value, headers, data = (*made, {}, None) if len(made) == 2 else (*made, None) if len(made) == 3 else made
        data = data if data is not None else b"" if value is None else json.dumps(value).encode()
        try:
            request.send_response(status)
            for name, text in headers.items(): request.send_header(name, text)
            request.send_header("Content-Type", "application/json")
            request.send_header("Content-Length", str(len(data)))
            request.send_header("Connection", "close")
            request.end_headers()
            request.wfile.write(data)
        except OSError:
            pass  # Whoever asked was killed meanwhile.

    def good(self, endpoint, email, body):
        if endpoint == "/login" and email.startswith("second"):
            challenge = canary.CHALLENGE.make()
            self.owners[challenge] = email
            return {"data": {
                "requires_mfa_challenge": True, "identity": {"id": "i", "email": email},
                "mfa_challenge": {"challenge_token": challenge, "available_factors": ["totp", "email_otp"],
                                  "expires_at": "2999-01-01T00:00:00Z"}}}
        if endpoint in ("/login", "/refresh") or endpoint.startswith("/mfa/challenge") and not endpoint.endswith("/send"):
            refresh, access = canary.REFRESH.make(), canary.ACCESS.make()
            self.owners[refresh] = self.owners[access] = email
            return {"data": {
                "access_token": access, "token_type": "Bearer", "expires_in": self.lifetime, "refresh_token": refresh,
                "identity": {"id": "i", "email": email}}}
        if endpoint == "/me": return {"data": {"id": "i", "email": email}}
        if endpoint == "/sessions": return {"items": [{"id": "one", "ip_address": "127.0.0.1"}]}
        return None

    # Ways to spoil them

    @staticmethod
    def echo(status, form):
        """Canopy's own error, with all that was sent in its words, its code and its headers."""
        def spoil(server, value, repeated):
            words = " and ".join(canary.encoded(text, form) for text in repeated)
            headers = {"X-Echo": "".join(c for c in repeated[0] if c.isascii()), "Retry-After": repeated[0][:8]} if repeated else {}
            return status, {"error": {"statusCode": status, "code": words, "message": f"Cannot process {words}"}}, headers
        return spoil

    @staticmethod
    def raw(status, data, **headers):
        """Bytes that are no answer of Canopy's, with the good answer's secrets in them."""
        def spoil(server, value, repeated):
            text = json.dumps(value)
            return status, None, headers, data(text, value["data"]) if value and "data" in value else data(text, {})
        return spoil

    @staticmethod
    def hold(server, value, repeated):
        """Nothing, until it is released."""
        server.held.release()
        server.release.wait(60)
        return 200, value

    @staticmethod
    def cut(server, value, repeated):
        """The request took effect, and the answer is lost."""
        return None


# By name: bodies that no client can use, each with canaries in it.
MALFORMED = {
    "cut in the middle of a token": lambda t, d: t[: len(t) * 2 // 3].encode(),
    "HTML": lambda t, d: f"<html><p>{t}</p></html>".encode(),
    "no text": lambda t, d: t.encode() + b"\xff\xfe",
    "a token that is a list": lambda t, d: json.dumps({"data": {**d, "refresh_token": [d.get("refresh_token")]}}).encode(),
    "a token with a line break": lambda t, d: json.dumps({"data": {**d, "refresh_token": str(d.get("refresh_token")) + "\n"}}).encode(),
    "no object": lambda t, d: json.dumps([t]).encode(),
    "a lifetime that is a token": lambda t, d: json.dumps({"data": {**d, "expires_in": d.get("refresh_token"), "refresh_token": 7}}).encode(),
    "an envelope around it": lambda t, d: json.dumps({"error": {"statusCode": 500, "message": t}}).encode(),
}
