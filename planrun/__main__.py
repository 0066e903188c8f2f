"""`python -m planrun`"""

from planrun.cli.main import main

if __name__ == "__main__":
    main()
