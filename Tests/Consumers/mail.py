"""Mail programs, which show the token by SASL."""
import os, time
from consumer import Consumer
from documents import example, replaced
from mailservers import IMAP, SMTP, Mail
from stage import Failure
from terminal import Terminal

def shown(begins, profile, **others):
    """A configuration of docs/integrations.md, for a profile that is not the usual one."""
    return replaced(example("docs/integrations.md", "", begins), {
        "canopyctl token": f"canopyctl token --profile {profile}", **others})


LETTER = "From: ada@example.com\nTo: you@example.com\nSubject: greeting\n\nhello\n"


class Msmtp(Consumer):
    programs = ["msmtp"]
    mechanism = None

    def prepare(self):
        self.service = Mail(SMTP, self.files)
        self.door = self.service.door
        self.configuration = self.directory / "msmtprc"
        self.configuration.write_text(
            f"account default\nhost 127.0.0.1\nport {self.service.port}\ntls on\ntls_starttls off\n"
            f"tls_trust_file {self.files[0]}\nfrom ada@example.com\nuser ada@example.com\n"
            + shown("# ~/.msmtprc", self.profile, **{
                "auth oauthbearer                                   # or xoauth2": f"auth {self.mechanism.lower()}"}))
        self.configuration.chmod(0o600)

    def use(self):
        self.service.received.clear()
        self.service.mechanisms.clear()
        ended = self.stage.run("msmtp", f"--file={self.configuration}", "you@example.com", input=LETTER)
        if ended[0] == 0 and (len(self.service.received) != 1 or self.service.mechanisms != [self.mechanism]):
            raise Failure(f"{len(self.service.received)} letters by {self.service.mechanisms}")
        return ended


class MsmtpOAuthBearer(Msmtp):
    name = "msmtp with OAUTHBEARER"
    mechanism = "OAUTHBEARER"


class MsmtpXOAuth2(Msmtp):
    name = "msmtp with XOAUTH2"
    mechanism = "XOAUTH2"


class MuttSends(Consumer):
    name = "mutt over SMTP"
    programs = ["mutt"]

    def prepare(self):
        self.service = Mail(SMTP, self.files)
        self.door = self.service.door
        self.configuration = self.directory / "muttrc"
        self.configuration.write_text(
            f'set smtp_url="smtps://ada%40example.com@127.0.0.1:{self.service.port}/"\n'
            f'set certificate_file="{self.files[0]}"\nset ssl_ca_certificates_file="{self.files[0]}"\n'
            f'set copy=no\nset from="ada@example.com"\nset realname="Ada"\n' + shown("# ~/.muttrc", self.profile))

    def use(self):
        self.service.received.clear()
        ended = self.stage.run(
            "mutt", "-n", "-F", self.configuration, "-s", "greeting", "you@example.com", input="hello\n",
            environment={"HOME": str(self.directory), "TERM": "xterm"})
        if ended[0] == 0 and len(self.service.received) != 1:
            raise Failure(f"{len(self.service.received)} letters came: {ended[1]}{ended[2]}")
        return ended


class MuttReads(Consumer):
    """On a terminal of its own, where it opens the mailbox and is told to quit."""

    name = "mutt over IMAP"
    programs = ["mutt"]

    def prepare(self):
        self.service = Mail(IMAP, self.files)
        self.door = self.service.door
        self.configuration = self.directory / "muttrc"
        self.configuration.write_text(
            f'set folder="imaps://127.0.0.1:{self.service.port}/"\nset spoolfile="+INBOX"\n'
            f'set imap_user="ada@example.com"\nset certificate_file="{self.files[0]}"\n'
            f'set ssl_ca_certificates_file="{self.files[0]}"\n' + shown("# ~/.muttrc", self.profile))

    def use(self):
        """The status is 0 once the letter's subject is in the list; what the screen showed is the output."""
        end = time.monotonic() + 60
        with Terminal(
                "mutt", "-n", "-F", self.configuration, cwd=self.directory,
                env=os.environ | {"HOME": str(self.directory), "TERM": "xterm", "LINES": "24", "COLUMNS": "160"}) as terminal:
            while time.monotonic() < end and not (b"greeting" in terminal.shown or b"canopyctl" in terminal.shown):
                if not terminal.read(0.2):
                    break
            shown = terminal.shown
        return (0 if b"greeting" in shown else 1), shown.decode(errors="replace"), ""


class Mbsync(Consumer):
    name = "mbsync with XOAUTH2"
    programs = ["mbsync"]

    def prepare(self):
        self.service = Mail(IMAP, self.files)
        self.door = self.service.door
        self.configuration = self.directory / "mbsyncrc"
        self.number = 0

    def use(self):
        self.number += 1
        inbox = self.directory / f"mail{self.number}"
        self.configuration.write_text(
            f"IMAPAccount server\nHost localhost\nPort {self.service.port}\nSSLType IMAPS\n"
            f"CertificateFile {self.files[0]}\nUser ada@example.com\n"
            + shown("# ~/.mbsyncrc", self.profile) + "\nIMAPStore remote\nAccount server\n\n"
            f"MaildirStore local\nInbox {inbox}\nSubFolders Verbatim\n\n"
            f"Channel inbox\nFar :remote:\nNear :local:\nCreate Near\nSync Pull\nSyncState *\n")
        ended = self.stage.run("mbsync", "-c", self.configuration, "-a")
        if ended[0] == 0 and (len(list(inbox.glob("*/*"))) < 1 or self.service.mechanisms[-1:] != ["XOAUTH2"]):
            raise Failure(f"no letter came: {ended[1]}{ended[2]}")
        return ended


CONSUMERS = [MsmtpOAuthBearer, MsmtpXOAuth2, MuttSends, MuttReads, Mbsync]
