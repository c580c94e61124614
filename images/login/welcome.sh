# shellcheck shell=sh
# The message of the day. jail-login binds it into /etc/profile.d of the tree, where the shell that a user logs in with
# reads it, as that user and inside of the jail. It is for the terminal of an ssh session alone: commands, scp, sftp, rsync,
# jobs and the shells of a tmux are silent. Slurm is asked for a second at most, and not again when it does not answer.
case $- in
*i*)
    if [ -n "${SSH_TTY-}" ] && [ -z "${SLURM_JOB_ID-}" ] && [ ! -e ~/.hushlogin ] &&
        [ "$(tty 2>/dev/null)" = "$SSH_TTY" ]; then
        (
            PATH=/opt/slurm/bin:/usr/bin:/bin
            printf '\nSlurm cluster %s\n' "${SOPERATOR_CLUSTER-}"
            if partitions=$(timeout 1 sinfo --noheader --summarize --format='%R %F' 2>/dev/null) &&
                jobs=$(timeout 1 squeue --noheader --me --format=%t 2>/dev/null); then
                free=
                while IFS=' /' read -r partition _ idle _ all; do
                    [ "${idle:-0}" = 0 ] || free="$free${free:+, }$partition $idle of $all"
                done <<END
$partitions
END
                running=0 pending=0
                for state in $jobs; do
                    if [ "$state" = PD ]; then
                        pending=$((pending + 1))
                    else
                        running=$((running + 1))
                    fi
                done
                printf '  %-12s%s\n' 'Free nodes' "${free:-none}" 'Your jobs' "$running running, $pending pending"
            else
                echo '  slurmctld does not answer just now.'
            fi
            if man --where sbatch >/dev/null 2>&1; then
                manual=', man sbatch'
            fi
            printf '  %-12s%s\n\n' 'Docs' "${SOPERATOR_DOCS-}${manual-}"
        )
    fi
    ;;
esac
