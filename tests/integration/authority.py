# SPDX-License-Identifier: Apache-2.0
"""Certificates, as the guide makes them: by openssl."""
import subprocess


class Authority:
    """Who signs: NAME.pem and NAME.key in a folder, and files of the same kind for whoever it signs for."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.openssl("req", "-x509", *self.key(f"{name}.key"), "-days", "30", "-subj", f"/CN={name}", "-out", f"{name}.pem")

    def openssl(self, *words, text=None):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self.folder, text=True, input=text, timeout=60)

    @staticmethod
    def key(path):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path]

    def issue(self, name, usage, address="127.0.0.1"):
        self.openssl("req", *self.key(f"{name}.key"), "-subj", f"/CN={name}", "-out", f"{name}.csr")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{self.name}.pem", "-CAkey", f"{self.name}.key", "-CAcreateserial",
                     "-days", "30", "-extfile", "/dev/stdin", "-out", f"{name}.pem",
                     text=f"subjectAltName=IP:{address}\nextendedKeyUsage={usage}\n")

    def files(self, name, authority=None):
        return {"certificate": str(self.folder / f"{name}.pem"), "key": str(self.folder / f"{name}.key"),
                "ca_file": str(self.folder / f"{authority or self.name}.pem")}
