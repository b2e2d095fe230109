/** One living process at a time in a journal's directory: two would book one call as ended and as interrupted. */

import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'

const OWNER_FILE = 'owner'
/** A worker whose supervisor was killed ends within this time. */
const PREDECESSOR_BOUND_MS = 10_000
const PREDECESSOR_POLL_MS = 50
const PRIVATE_FILE_MODE = 0o600

/**
 * Waits for a predecessor to end, then takes the directory.
 * @throws Error naming the process that still lives in it
 */
export async function claimDirectory(directory: string, boundMs = PREDECESSOR_BOUND_MS): Promise<void> {
  const path = join(directory, OWNER_FILE)
  const deadline = performance.now() + boundMs
  while (isAnotherAlive(readOwner(path))) {
    if (performance.now() > deadline)
      throw new Error(`The journal ${directory} is in use by process ${readOwner(path)?.split(' ')[0]}.`)
    await sleep(PREDECESSOR_POLL_MS)
  }
  writeFileSync(path, readIdentity(process.pid) ?? `${process.pid} `, { mode: PRIVATE_FILE_MODE })
}

export function releaseDirectory(directory: string): void {
  rmSync(join(directory, OWNER_FILE), { force: true })
}

/** Returns whether a live process owns the directory. */
export const isOwned = (directory: string): boolean => isAlive(readOwner(join(directory, OWNER_FILE)))

function readOwner(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

const readPid = (owner: string | null): number => Number(owner?.split(' ')[0])

const isAnotherAlive = (owner: string | null): boolean => readPid(owner) !== process.pid && isAlive(owner)

function isAlive(owner: string | null): boolean {
  const pid = readPid(owner)
  if (owner === null || !Number.isInteger(pid) || pid <= 0) return false
  return readIdentity(pid) === owner
}

/** Returns `<pid> <boot> <start>`: a pid is reused, but not at one start time of one boot. */
function readIdentity(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // After the program's name, which may hold anything, field 3 is the state and field 22 the start time.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z' || fields[0] === 'X') return null
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
    return `${pid} ${boot} ${fields[19]}`
  } catch {
    return null
  }
}
