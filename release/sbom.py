#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the contents of a wheel or a Debian package as SPDX 2.3 in JSON:  sbom.py FILE >FILE.spdx.json

Lists each file with its checksums, and each dependency with its version and licence. The dependencies are the shared
libraries that the plugin loads, as packages of the installed system; the dependencies of a Debian package; and the CUDA
runtime, if it is linked in. A dependency whose licence is not in LICENSES is an error. The date is SOURCE_DATE_EPOCH,
or the date of debian/changelog. The version of CUDA is the version of the nvcc that kernels/find_nvcc.sh finds, which
built the plugin.
"""
import datetime
import email.utils
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LICENSE = "LGPL-2.1-or-later"
# The licences that the projects declare, by names of libraries and packages. They apply to the parts that the plugin
# uses; other parts of a package may have other licences.
LICENSES = [
    (r"libgst|libgstreamer|gstreamer1\.0-", "LGPL-2.0-or-later"),
    (r"lib(glib|gobject|gmodule|gio)-?2\.0", "LGPL-2.1-or-later"),
    (r"libopencv[_-](core|imgproc)", "Apache-2.0"),
    (r"liborc-0\.4", "BSD-2-Clause AND BSD-3-Clause"),
    (r"libstdc\+\+|libgcc[_-]s", "GPL-3.0-or-later WITH GCC-exception-3.1"),
    (r"lib(c|m|dl|rt|pthread)\.so|libc6|ld-linux", "LGPL-2.1-or-later"),
    (r"python3", "PSF-2.0"),
]


def created():
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if seconds is None:
        seconds = email.utils.parsedate_to_datetime(
            re.search(r"^ -- .*>  (.*)$", (ROOT / "debian/changelog").read_text(), re.M)[1]).timestamp()
    return datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def unpack(file, folder):
    if file.suffix == ".whl":
        zipfile.ZipFile(file).extractall(folder)
    elif file.suffix == ".deb":
        subprocess.run(["dpkg-deb", "--extract", file, folder], check=True)
    else:
        sys.exit(f"{file} is no wheel and no Debian package")


def digest(file, kind):
    return hashlib.new(kind, file.read_bytes()).hexdigest()


def needed(library):
    return re.findall(r"NEEDED.*\[(.*)\]",
                      subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout)


def installed(library):
    """The Debian package of a shared library, and its version; ("", "") if it is not installed here."""
    machine = sysconfig.get_config_var("MULTIARCH")
    if not machine or not shutil.which("dpkg-query"):
        return "", ""
    found = subprocess.run(["dpkg-query", "-S", f"*/{machine}/{library}"], capture_output=True,
                           text=True).stdout.splitlines()
    for package in sorted(line.split(":")[0] for line in found if line.startswith(("lib", "gstreamer"))):
        return package, version_of(package)
    return "", ""


def license_of(name):
    for pattern, license_ in LICENSES:
        if re.match(pattern, name):
            return license_
    return sys.exit(f"the licence of {name} is not in LICENSES of {sys.argv[0]}")


def depends_of(file):
    """The packages that a Debian package needs, the first of each choice, with the installed versions."""
    if file.suffix != ".deb":
        return
    fields = subprocess.run(["dpkg-deb", "--field", file, "Depends"], check=True, capture_output=True, text=True).stdout
    for choice in filter(None, map(str.strip, fields.split(","))):
        name = re.match(r"[a-z0-9.+-]+", choice)[0]
        yield name, version_of(name)


def version_of(package):
    return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True,
                          text=True).stdout.strip()


def cuda_version():
    nvcc = subprocess.run([ROOT / "kernels/find_nvcc.sh"], capture_output=True, text=True).stdout.strip()
    found = (nvcc
             and re.search(r"V([0-9.]+)", subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout))
    return found[1] if found else ""


def package_of(name, version, license_, supplier="NOASSERTION", **more):
    return {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name), "name": name,
            "versionInfo": version or "NOASSERTION", "supplier": supplier,
            "downloadLocation": "NOASSERTION", "licenseConcluded": "NOASSERTION", "licenseDeclared": license_,
            "copyrightText": "NOASSERTION", "filesAnalyzed": False, **more}


def document(file, folder):
    version = subprocess.run([ROOT / "release/version.sh"], check=True, capture_output=True, text=True).stdout.strip()
    files, libraries, packages, relations = [], set(), [], []
    cuda = False
    for number, path in enumerate(sorted(path for path in folder.rglob("*")
                                         if path.is_file() and not path.is_symlink())):
        files.append({"SPDXID": f"SPDXRef-file-{number}", "fileName": f"./{path.relative_to(folder)}",
                      "checksums": [{"algorithm": kind.upper(), "checksumValue": digest(path, kind)}
                                    for kind in ("sha1", "sha256")],
                      "licenseConcluded": LICENSE, "licenseInfoInFiles": ["NOASSERTION"],
                      "copyrightText": "NOASSERTION"})
        if re.search(r"\.so(\.\d+)*$", path.name):
            libraries.update(needed(path))
            cuda = cuda or b".nv_fatbin" in path.read_bytes()
    code = hashlib.sha1("".join(sorted(each["checksums"][0]["checksumValue"] for each in files)).encode()).hexdigest()
    ours = package_of("cudavision", version, LICENSE, "Organization: cudavision developers", packageFileName=file.name,
                      filesAnalyzed=True, checksums=[{"algorithm": "SHA256", "checksumValue": digest(file, "sha256")}],
                      packageVerificationCode={"packageVerificationCodeValue": code},
                      licenseInfoFromFiles=["NOASSERTION"], hasFiles=[each["SPDXID"] for each in files])
    for library in sorted(libraries - {path.name for path in folder.rglob("*")}):
        name, found = installed(library)
        entry = package_of(name or library, found, license_of(library), comment=f"provides {library}")
        if entry["SPDXID"] not in [each["SPDXID"] for each in packages]:
            packages.append(entry)
            relations.append((ours["SPDXID"], "DYNAMIC_LINK", entry["SPDXID"]))
    for name, found in depends_of(file):
        entry = package_of(name, found, license_of(name))
        if entry["SPDXID"] not in [each["SPDXID"] for each in packages]:
            packages.append(entry)
            relations.append((ours["SPDXID"], "DEPENDS_ON", entry["SPDXID"]))
    if cuda:
        packages.append(package_of("cuda-cudart-static", cuda_version(), "LicenseRef-NVIDIA-CUDA-EULA",
                                   "Organization: NVIDIA"))
        relations.append((ours["SPDXID"], "STATIC_LINK", packages[-1]["SPDXID"]))
    result = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": file.name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{file.name}-{digest(file, 'sha256')}",
        "creationInfo": {"created": created(),
                         "creators": ["Organization: cudavision developers", f"Tool: release-sbom-{version}"]},
        "documentDescribes": [ours["SPDXID"]], "packages": [ours, *packages], "files": files,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations],
    }
    if cuda:
        result["hasExtractedLicensingInfos"] = [{
            "licenseId": "LicenseRef-NVIDIA-CUDA-EULA", "name": "NVIDIA CUDA Toolkit End User License Agreement",
            "extractedText":
                "The static CUDA runtime may be distributed with applications: https://docs.nvidia.com/cuda/eula/"}]
    return result


def main():
    file = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
        unpack(file, pathlib.Path(scratch))
        print(json.dumps(document(file, pathlib.Path(scratch)), indent=1))


if __name__ == "__main__":
    main()
