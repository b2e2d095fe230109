/** Reads pages in a thread: the markup of one may take many seconds, in which this process has other work to do. */
import { Worker } from 'node:worker_threads'
import type { ReadPage } from '../../markdown/page.ts'
import { FileProblemError } from '../../markdown/problem.ts'
import type { FromPageThread, ToPageThread } from './page-thread.ts'

interface Waiting {
  readonly resolve: (page: ReadPage) => void
  readonly reject: (error: Error) => void
}

export interface PageReader {
  /** Reads a page. Rejects with the FileProblemError of `readPage`, and once the thread has ended. */
  read(bytes: Buffer, path: string): Promise<ReadPage>
  close(): Promise<unknown>
}

/** Starts the thread with the first page. */
export function pageReader(): PageReader {
  /** In the order in which the thread answers. */
  const waiting: Waiting[] = []
  let thread: Worker | null = null
  let ended: Error | null = null

  const begin = (): Worker => {
    const worker = new Worker(new URL('page-thread.ts', import.meta.url))
    worker.on('message', (answer: FromPageThread) => {
      const { resolve, reject } = waiting.shift()!
      if ('page' in answer) resolve(answer.page)
      else reject(new FileProblemError(answer.problems))
    })
    worker.on('error', (error) => {
      ended = error
    })
    worker.on('exit', () => {
      ended ??= new Error('The thread that reads pages has ended')
      for (const { reject } of waiting.splice(0)) reject(ended)
    })
    return worker
  }
  return {
    read: (bytes, path) =>
      new Promise((resolve, reject) => {
        if (ended !== null) return reject(ended)
        thread ??= begin()
        waiting.push({ resolve, reject })
        thread.postMessage({ path, bytes } satisfies ToPageThread)
      }),
    close: async () => thread?.terminate(),
  }
}
