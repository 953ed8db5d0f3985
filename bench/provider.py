"""An OpenID provider just good enough for oidc-agent to have an account: prints its port, answers for ever."""
import http.server, json

# About as long as what the sandbox issues, so that no server sends less than another.
TOKEN = "a" * 600


class Provider(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def reply(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        base = f"http://127.0.0.1:{self.server.server_port}"
        self.reply({
            "issuer": base + "/", "authorization_endpoint": base + "/auth", "token_endpoint": base + "/token",
            "userinfo_endpoint": base + "/userinfo", "jwks_uri": base + "/keys",
            "scopes_supported": ["openid", "offline_access"], "response_types_supported": ["code"],
            "grant_types_supported": ["refresh_token", "authorization_code"]})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.reply({
            "access_token": TOKEN, "token_type": "Bearer", "expires_in": 86400, "refresh_token": "r" * 40,
            "scope": "openid offline_access"})


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
print(server.server_port, flush=True)
server.serve_forever()
