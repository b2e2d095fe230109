/** Processes in a PID namespace of their own, as a container's are. */
import { spawnSync } from 'node:child_process'

/** Comes before a command. The command ends with `unshare`, however that ends. */
export const IN_PID_NAMESPACE: readonly string[] = [
  'unshare',
  '--pid',
  '--fork',
  '--mount-proc',
  '--kill-child=SIGKILL',
]

/** Returns why this machine makes no PID namespace; null where it does. */
export function whyNoPidNamespace(): string | null {
  const [program = '', ...args] = IN_PID_NAMESPACE
  const { error, status, stderr } = spawnSync(program, [...args, 'true'], { encoding: 'utf8' })
  if (status === 0) return null
  return `no PID namespace can be made here: ${error?.message ?? stderr.trim()}`
}
