/** Responses that upstreams keep, as calls note and find them. */
import type { StoredResponses } from '../../postgres/requests/repository.ts'
import type { Log } from '../../telemetry/log.ts'

export const storedResponses = (
  database: Pick<StoredResponses, 'storeResponse' | 'findStoredResponse' | 'forgetStoredResponse'>,
  log: Pick<Log, 'warn'>,
): typeof database => ({
  storeResponse: (response) =>
    database
      .storeResponse(response)
      .catch((error: Error) =>
        log.warn(
          { err: error, channel: response.channelId },
          'Failed to note a response: no call can go on with it',
        ),
      ),
  findStoredResponse: database.findStoredResponse,
  forgetStoredResponse: database.forgetStoredResponse,
})
