"""Servers on loopback that want the present token of one profile, as other people's servers do."""
import base64, gzip, hashlib, json, os, ssl, subprocess, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def certificate(directory):
    """A certificate for 127.0.0.1 and localhost, and its key; both are files."""
    certificate, key = directory / "server.pem", directory / "server.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", key,
         "-out", certificate], check=True, capture_output=True)
    return certificate, key


def tls(files):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    return context


class Doorkeeper:
    """Lets in who shows the token that is accepted now, and remembers who was turned away."""

    def __init__(self):
        self.accepted = None
        self.let_in, self.turned_away = [], []
        self.lock = threading.Lock()

    def sees(self, token):
        with self.lock:
            is_good = token is not None and token in (self.accepted or ())
            (self.let_in if is_good else self.turned_away).append(token)
            return is_good

    def forget(self):
        with self.lock:
            self.let_in.clear()
            self.turned_away.clear()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def bearer(self):
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        return token if scheme.lower() == "bearer" and token else None

    def basic(self):
        """User name and password; None for neither."""
        scheme, _, text = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return None, None
        name, _, password = base64.b64decode(text).decode().partition(":")
        return name, password

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status, body=b"", type="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        self.serve()

    do_HEAD = do_POST = do_PUT = do_GET


class Threads(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client):
        """A client that has had enough closes as it likes; everything else is a fault of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client)


class Web:
    """An HTTP server whose handler's class finds it, and the doorkeeper, in `service`."""

    def __init__(self, handler, files=None):
        self.door = Doorkeeper()
        self.http = Threads(("127.0.0.1", 0), type(handler.__name__, (handler,), {"service": self}))
        if files:
            self.http.socket = tls(files).wrap_socket(self.http.socket, server_side=True)
        self.port = self.http.server_address[1]
        self.url = f"http{'s' if files else ''}://127.0.0.1:{self.port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


class API(Handler):
    """Wants a bearer token for everything, and says who it was."""

    def serve(self):
        self.body()
        if not self.service.door.sees(self.bearer()):
            return self.answer(401, b'{"error":"no good token"}', WWW_Authenticate="Bearer")
        self.answer(200, b'{"hello":"world"}')


class Kubernetes(Handler):
    """As much of an API server as `kubectl get` asks for."""

    def serve(self):
        if not self.service.door.sees(self.bearer()):
            return self.say(401, {
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "Unauthorized",
                "reason": "Unauthorized", "code": 401})
        path = self.path.partition("?")[0]
        if path == "/version":
            return self.say(200, {"major": "1", "minor": "30", "gitVersion": "v1.30.0"})
        if path == "/api/v1/namespaces/default/configmaps/greeting":
            return self.say(200, {
                "kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "greeting", "namespace": "default"},
                "data": {"hello": "world"}})
        if path == "/api":
            return self.say(200, {"kind": "APIVersions", "versions": ["v1"]})
        if path == "/apis":
            return self.say(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
        if path == "/api/v1":
            return self.say(200, {
                "kind": "APIResourceList", "groupVersion": "v1", "resources": [{
                    "name": "configmaps", "singularName": "", "namespaced": True, "kind": "ConfigMap",
                    "verbs": ["get", "list"]}]})
        self.say(404, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                       "message": "not here", "reason": "NotFound", "code": 404})

    def say(self, status, value):
        self.answer(status, json.dumps(value).encode())


class Git(Handler):
    """git's own server behind Basic authentication, whose password is the token."""

    def serve(self):
        body = self.body()
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = self.chunks()
        name, password = self.basic()
        if not self.service.door.sees(password):
            return self.answer(401, b"no good token", "text/plain", WWW_Authenticate='Basic realm="git"')
        path, _, query = self.path.partition("?")
        ended = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env={
            **os.environ, "GIT_PROJECT_ROOT": str(self.service.directory), "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_USER": name,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", "")})
        head, _, content = ended.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        status = int(headers.pop("Status", "200").split()[0])
        self.answer(status, content, headers.pop("Content-Type", "text/plain"))

    def chunks(self):
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body


class Registry(Handler):
    """An image of one empty layer, as the OCI's distribution specification hands it out."""

    LAYER = gzip.compress(bytes(1024), mtime=0)

    @staticmethod
    def digest(blob):
        return "sha256:" + hashlib.sha256(blob).hexdigest()

    def serve(self):
        name, password = self.basic()
        if not self.service.door.sees(password):
            return self.answer(
                401, b'{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}',
                WWW_Authenticate='Basic realm="registry"')
        self.service.names.add(name)
        configuration = json.dumps({
            "architecture": "amd64", "os": "linux", "config": {}, "rootfs": {
                "type": "layers", "diff_ids": [self.digest(bytes(1024))]}}).encode()
        described = {"mediaType": "application/vnd.oci.image.config.v1+json", "size": len(configuration),
                     "digest": self.digest(configuration)}
        layer = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "size": len(self.LAYER),
                 "digest": self.digest(self.LAYER)}
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": described,
            "layers": [layer]}).encode()
        if self.path == "/v2/":
            return self.answer(200, b"{}", Docker_Distribution_Api_Version="registry/2.0")
        if self.path == "/v2/team/tool/tags/list":
            return self.answer(200, b'{"name":"team/tool","tags":["1"]}')
        if self.path in ("/v2/team/tool/manifests/1", "/v2/team/tool/manifests/" + self.digest(manifest)):
            return self.answer(200, manifest, "application/vnd.oci.image.manifest.v1+json",
                               Docker_Content_Digest=self.digest(manifest))
        for blob in (configuration, self.LAYER):
            if self.path == "/v2/team/tool/blobs/" + self.digest(blob):
                return self.answer(200, blob, "application/octet-stream")
        self.answer(404, b'{"errors":[{"code":"NOT_FOUND"}]}')
