"""How well memory serves, counted from what is stored: never an estimate without saying so, never a share without its n."""
