"""Apart from `attacks`, whose functions are run by name in processes of their own."""

from torture.attacks import main

if __name__ == "__main__":
    main()
