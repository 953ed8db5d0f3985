"""Programs that speak HTTP: to canopyd itself, or with its token to a server."""
import json, socket
from consumer import Consumer
from documents import example
from services import API, Web
from stage import Failure


class OfAPI(Consumer):
    """One that shows the token to an HTTP server."""

    def prepare(self):
        self.service = Web(API)
        self.door = self.service.door


class CurlOnSocket(Consumer):
    name = "curl on the socket"
    programs = ["curl", "jq"]

    def use(self):
        return self.stage.shell(
            'curl --fail-with-body -sS --unix-socket "$XDG_RUNTIME_DIR/canopyd/agent.sock" '
            f'"http://canopyd/v1/token?profile={self.profile}" | tee answer.json | jq -r .access_token ||'
            " { cat answer.json; exit 1; }", directory=self.directory)


class CurlForText(Consumer):
    name = "curl for plain text"
    programs = ["curl"]

    def use(self):
        return self.stage.run(
            "curl", "--fail-with-body", "-sS", "-H", "Accept: text/plain", "--unix-socket", self.stage.socket,
            f"http://canopyd/v1/token?profile={self.profile}")


class CurlWithHeaderFile(OfAPI):
    name = "curl with a header file"
    programs = ["curl"]

    def use(self):
        return self.stage.shell(
            f"umask 077; canopyctl header --profile {self.profile} >header; curl -fsS -H @header {self.service.url}/",
            directory=self.directory)


class CurlWithHeaderPipe(OfAPI):
    name = "curl with a header from a pipe"
    programs = ["curl"]

    def use(self):
        return self.stage.shell(
            f"canopyctl header --profile {self.profile} | curl -fsS -H @- {self.service.url}/", directory=self.directory)


class CanopyctlCurl(OfAPI):
    name = "canopyctl curl"
    programs = ["curl"]

    def use(self):
        return self.stage.run(
            "canopyctl", "curl", "--profile", self.profile, "--", "-fsS", "--data", '{"a":1}', self.service.url + "/")


class Wget(OfAPI):
    name = "wget"
    programs = ["wget"]

    def use(self):
        return self.stage.shell(
            f'header=$(canopyctl header --profile {self.profile}); wget -qO- --header="$header" {self.service.url}/',
            directory=self.directory)


class Jq(Consumer):
    name = "a pipeline with jq"
    programs = ["jq"]

    def use(self):
        return self.stage.shell(f"canopyctl token --profile {self.profile} --json | jq -er .access_token")


class Example(Consumer):
    """A program of docs/integrations.md, word for word."""

    # What runs it, and how it begins.
    command, language, begins = [], None, None

    def prepare(self):
        self.program = self.directory / "program"
        self.program.write_text(example("docs/integrations.md", self.language, self.begins))

    def use(self):
        return self.stage.run(*self.command, self.program, environment={"CANOPY_PROFILE": self.profile})


class HTTPClient(Example):
    name = "Python's http.client"
    command, language, begins = ["/usr/bin/python3"], "python", "# http.client"


class Requests(Example):
    name = "Python's requests"
    command, language, begins = ["/usr/bin/python3"], "python", "# requests"


class HTTPX(Example):
    name = "Python's httpx"
    command, language, begins = ["/usr/bin/python3"], "python", "# httpx"


class AIOHTTP(Example):
    name = "Python's aiohttp"
    command, language, begins = ["/usr/bin/python3"], "python", "# aiohttp"


class Node(Example):
    name = "Node's http"
    programs = ["node"]
    command, language, begins = ["node"], "js", "// Node"


class Go(Consumer):
    """The bytes of Go's net/http, kept connection and all; Go itself takes half a gigabyte."""

    name = "what Go's net/http sends"

    def use(self):
        request = (f"GET /v1/token?profile={self.profile} HTTP/1.1\r\nHost: canopyd\r\nUser-Agent: Go-http-client/1.1\r\n"
                   "Accept-Encoding: gzip\r\n\r\n").encode()
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(60)
            client.connect(self.stage.socket)
            first = self.exchange(client, request)
            # As a client with a pool of connections does next.
            second = self.exchange(client, request)
        if first[0] != second[0]:
            raise Failure(f"the second answer on a connection is {second[0]}, and the first {first[0]}")
        answer = json.loads(second[1])
        if second[0] == 200:
            return 0, answer["access_token"], ""
        return second[0], "", f"{answer['detail']} {answer['fix']}"

    def exchange(self, client, request):
        client.sendall(request)
        data = b""
        while b"\r\n\r\n" not in data:
            data += client.recv(65536) or self.over()
        head, _, body = data.partition(b"\r\n\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if b"content-encoding" in headers:
            raise Failure("the answer is encoded")
        while len(body) < int(headers[b"content-length"]):
            body += client.recv(65536) or self.over()
        return int(head.split()[1]), body

    def over(self):
        raise Failure("canopyd closed the connection")


CONSUMERS = [
    CurlOnSocket, CurlForText, CurlWithHeaderFile, CurlWithHeaderPipe, CanopyctlCurl, Wget, Jq, HTTPClient, Requests,
    HTTPX, AIOHTTP, Node, Go]
