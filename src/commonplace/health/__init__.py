"""How healthy the memories of a namespace are: what fades, repeats, contradicts or was left behind."""
