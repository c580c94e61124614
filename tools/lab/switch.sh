#!/bin/sh
# Switches a further machine of the lab on or off, as by its plug: lab-machine NUMBER on [COMMAND] | NUMBER off
#
# COMMAND runs there as root when the machine has joined, as in: lab-machine 2 on 'date -s "+10 minutes"'
case "$1 $2" in
    [2-9]" on" | [2-9]" off") echo "$*" > /dev/tty2 ;;
    *)
        echo "lab-machine: expected a number from 2 on, then on or off, as in: lab-machine 2 off" >&2
        exit 2
        ;;
esac
