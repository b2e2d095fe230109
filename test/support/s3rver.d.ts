/** The parts of a third party's bucket that the tests use; the package has no types of its own. */
declare module 's3rver' {
  import type { Server } from 'node:http'

  export default class S3rver {
    constructor(options: {
      readonly address: string
      readonly port: number
      readonly silent: boolean
      readonly directory: string
      readonly configureBuckets: ReadonlyArray<{ readonly name: string }>
    })
    httpServer: Server
    run(): Promise<{ readonly port: number; readonly address: string }>
    close(): Promise<void>
  }
}
