import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Machine {
  cpu: string
  cores: number
  memoryGiB: number
  system: string
}

const distribution = (): string => {
  try {
    return /^PRETTY_NAME="?(.+?)"?$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'Linux'
  } catch {
    return 'Linux'
  }
}

export const describeMachine = (): Machine => ({
  cpu: cpus()[0]?.model.trim() ?? 'unknown',
  cores: cpus().length,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  system: `${distribution()}, Linux ${release()}`,
})

/** The checkout that the bench is part of. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Returns version and commit of the checkout, with `+` after the commit when tracked files of the service differ. */
export const describeCheckout = (): string => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  try {
    const changed = git('status', '--porcelain', '--untracked-files=no', '--', 'src', 'pipelines', 'schemas')
    return `${version} (${git('rev-parse', '--short', 'HEAD')}${changed ? '+' : ''})`
  } catch {
    return version // not a git checkout
  }
}
