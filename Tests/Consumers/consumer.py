"""What every consumer goes through: a fresh token, the next one, and none."""
import re
from stage import Failure

# How many characters may be said of a missing sign-in; a page of them is no help.
LONGEST_WORDS = 2000


class Consumer:
    """A program that needs a token, with a profile and an identity of its own.

    `use` has it need one, and returns (status, standard output, standard error) as the user sees them. `door` is who
    asks it for the token, where the consumer does not print it.
    """

    name = None
    # The programs that it cannot do without.
    programs = []
    # A consumer that is asked to sign in shows this, and not just that something failed.
    cure = "canopyctl login"

    def __init__(self, stage, files):
        self.stage, self.files = stage, files
        self.profile = re.sub(r"[^a-z0-9]+", "-", self.name.lower())
        self.directory = stage.work / self.profile
        self.directory.mkdir()
        self.door = None
        self.prepare()

    def prepare(self):
        pass

    def checks(self):
        """What is run, in order: each a sentence and what has to do it."""
        return [
            ("works with a fresh token", self.fresh), ("works after a rotation", self.rotated), *self.extras(),
            ("says what to do when a sign-in is needed", self.refused)]

    def extras(self):
        return []

    def fresh(self):
        self.works_with(self.stage.token(self.profile)["access_token"])

    def rotated(self):
        self.works_with(self.stage.rotate(self.profile)["access_token"])

    def works_with(self, token):
        if self.door:
            self.door.forget()
            self.door.accepted = {token}
        status, output, words = self.use()
        if status != 0:
            raise Failure(f"status {status}: {output}{words}")
        if self.door:
            if not self.door.let_in:
                raise Failure(f"the server was not shown a token: {output}{words}")
            # Some ask without a token first; none may show one that is no longer the present one.
            if any(self.door.turned_away):
                raise Failure("the server was shown another token than the present one")
        elif output.strip() != token:
            raise Failure(f"it has not printed the present token, but {len(output)} bytes: {words}")

    def refused(self):
        self.stage.revoke(self.profile)
        if self.door:
            self.door.accepted = set()
            self.door.forget()
        status, output, words = self.use()
        shown = output + words
        if status == 0:
            raise Failure(f"it ended well without a token: {shown}")
        if self.cure not in shown or self.profile not in shown:
            raise Failure(f"it does not say to type `{self.cure}`, and for which profile: {shown}")
        if len(shown) > LONGEST_WORDS:
            raise Failure(f"it says {len(shown)} characters: {shown}")
        if "Traceback" in shown:
            raise Failure(f"it ends with a traceback: {shown}")
        if self.door and any(self.door.let_in + self.door.turned_away):
            raise Failure("the server was shown a token though there is none")
