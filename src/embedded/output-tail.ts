import type { ChildProcess } from 'node:child_process'

const TAIL_BYTES = 8 * 1024

/** The end of a process's output: enough to show why it ended, and bounded. */
export class OutputTail {
  #text = ''

  constructor(child: ChildProcess) {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8')
      stream?.on('data', (chunk: string) => {
        this.#text = (this.#text + chunk).slice(-TAIL_BYTES)
      })
    }
  }

  get text(): string {
    return this.#text.trim()
  }
}

/**
 * Resolves with the first line of standard output that is a JSON object with `"ready": true`, by which our own
 * programs report that they listen.
 */
export function readReadyLine(child: ChildProcess, signal: AbortSignal): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    let unread = ''
    const take = (chunk: string) => {
      const lines = (unread + chunk).slice(-TAIL_BYTES).split('\n')
      unread = lines.pop() ?? ''
      for (const line of lines) {
        const message = parseReady(line)
        if (message === null) continue
        child.stdout?.off('data', take)
        resolve(message)
      }
    }
    child.stdout?.on('data', take)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

function parseReady(line: string): Record<string, unknown> | null {
  try {
    const message: unknown = JSON.parse(line)
    if (typeof message !== 'object' || message === null) return null
    return 'ready' in message && message.ready === true ? { ...message } : null
  } catch {
    return null
  }
}
