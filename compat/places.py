"""Where things are."""

from pathlib import Path

# the tree that compat itself lives in
ROOT = Path(__file__).resolve().parent.parent
# what is fetched and made, and may be deleted at any time
BUILD = ROOT / "build" / "compat"
