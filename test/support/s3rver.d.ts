/** The parts of a third party's bucket that the tests use; the package has no types. */
declare module 's3rver' {
  import type { Server } from 'node:http'

  /** Where it keeps what it was given. */
  export interface S3rverStore {
    getResourcePath(bucket: string, key: string, kind: 'object'): string
    putObject(object: { readonly bucket: string; readonly key: string }): Promise<{ readonly size: number }>
  }

  export default class S3rver {
    constructor(options: {
      readonly address: string
      readonly port: number
      readonly silent: boolean
      readonly directory: string
      readonly configureBuckets: ReadonlyArray<{ readonly name: string }>
    })
    httpServer: Server
    readonly store: S3rverStore
    run(): Promise<{ readonly port: number; readonly address: string }>
    close(): Promise<void>
  }
}
