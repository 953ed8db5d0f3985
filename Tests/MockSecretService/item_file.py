"""The file in which mock-secret-service keeps its collections, if it is told to."""
import os


class ItemFile:
    """A file that has either what was written last or what was written before, whenever its writer is killed.

    As gnome-keyring does it, all of it anew for each change; its directory is synced as well. What cannot be
    written raises OSError, and leaves the file as it was and nothing beside it.
    """

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.folder = os.path.dirname(self.path)
        os.makedirs(self.folder, mode=0o700, exist_ok=True)

    def read(self):
        """What was written last; None before anything was."""
        try:
            with open(self.path, encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def write(self, text):
        temporary = self.path + ".new"
        try:
            # What a killed writer left is written over.
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, self.path)
        except OSError:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
