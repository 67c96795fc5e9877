# SPDX-License-Identifier: Apache-2.0
# group: tools
# limit: 60
# Errors that kill a context: an index outside an array fails a device-side assertion, the message reaches
# standard error, everything afterwards in this process fails with the same code, and a new process works.
import os
import re
import subprocess
from checks import *

if not gpu:
    skip("errors of the GPU")
if len(sys.argv) > 1 and sys.argv[1] == "--child":
    import torch

    x = torch.arange(10, device="cuda")
    y = x[torch.tensor([3, 12], device="cuda")]
    for _ in range(2):
        try:
            torch.cuda.synchronize()
            print("no error")
        except Exception as e:
            print(type(e).__name__, str(e).splitlines()[0])
    try:
        torch.ones(10, device="cuda").sum().item()
        print("no error")
    except Exception as e:
        print(type(e).__name__, str(e).splitlines()[0])
    sys.exit(3)


@section()
def assertion():
    r = subprocess.run([sys.executable, __file__, "--child"], capture_output=True, text=True, timeout=50)
    say("status", r.returncode)
    for line in r.stdout.splitlines():
        say("the program", line)
    lines = [line for line in r.stderr.splitlines() if "Assertion" in line]
    say("messages", len(lines))
    say("the first", re.sub(r"^\S*/", "", lines[0]) if lines else "none")


@section()
def another_process():
    import torch

    same("a new process", torch.arange(10, device="cuda")[torch.tensor([3, 9], device="cuda")],
         torch.tensor([3, 9]))


done()
