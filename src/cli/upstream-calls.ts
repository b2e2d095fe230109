/** Calls of a command to upstreams. Imported where one is made: most commands make none. */
import type { OpenUpstream } from '../../pipelines/management/channels/test-call.ts'
import type { MediaCalls } from '../../pipelines/tasks/ports.ts'
import { openAuthorizers } from '../server/channels/authorizers.ts'
import { openMediaCalls } from '../server/channels/media-calls.ts'
import { openUpstreamCalls } from '../server/channels/upstream-calls.ts'
import { UpstreamClient } from '../upstream/client.ts'
import { observeUpstream } from '../upstream/observe.ts'

export interface CommandCalls {
  readonly openUpstream: OpenUpstream
  /** They send no file. */
  readonly media: MediaCalls
  readonly close: () => void
}

/** Opens a client. A command reports the failure of its call, and writes no log. */
export function openCalls(): CommandCalls {
  const client = new UpstreamClient({ onHandlerError: () => undefined })
  const findAuthorizer = openAuthorizers({ hideRecent() {}, warn() {} })
  const call = openUpstreamCalls(client, findAuthorizer)
  const storage = { open: () => Promise.reject(new Error('There is no file to send')) }
  return {
    openUpstream: (request) => observeUpstream((handler) => call(request, handler)),
    media: openMediaCalls(client, storage, findAuthorizer),
    close: () => client.close(),
  }
}
