import { fileURLToPath } from 'node:url'
import { type Child, startChild } from '../harness/children.ts'
import { nextMessage } from '../harness/wait.ts'
import type { UpstreamSettings } from './main.ts'

const PROGRAM = fileURLToPath(new URL('main.ts', import.meta.url))

export interface Upstream {
  child: Child
  port: number
  /** Null without a certificate. */
  tlsPort: number | null
}

/** Starts the upstream's process and waits until it listens. */
export const startUpstream = async (settings: UpstreamSettings, core: number | null): Promise<Upstream> => {
  const args = [PROGRAM, JSON.stringify(settings)]
  const child = await startChild('the bench upstream', process.execPath, args, { core, messages: true })
  const ports = await nextMessage<Omit<Upstream, 'child'>>(child)
  return { child, ...ports }
}
