"""Where old programs look for ``torch.hub``'s function."""

from ..hub import load_state_dict_from_url

load_url = load_state_dict_from_url
__all__ = ["load_url"]
