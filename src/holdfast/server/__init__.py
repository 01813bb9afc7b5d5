"""The same memory over HTTP; needs the extra ``server``."""
