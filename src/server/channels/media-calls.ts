/** Joins the requests that media adapters describe to the clients that send them. */
import {
  MediaCallFailure,
  type MediaCalls,
  type MediaSendOptions,
  type TaskStorage,
} from '../../../pipelines/tasks/ports.ts'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import type { Authorization, Authorizer } from '../../auth/authorizer.ts'
import type { FormPart, MediaAnswer, MediaRequest } from '../../channels/media/adapter.ts'
import {
  parseOrigin,
  type ResponseHeaders,
  renderHead,
  type UpstreamClient,
  type UpstreamFailure,
  type UpstreamFailureKind,
} from '../../upstream/client.ts'
import { type FormFailure, type FormField, sendForm } from '../../upstream/request/form.ts'

const NO_BYTES = new Uint8Array()
const JSON_TYPE: readonly [string, string] = ['content-type', 'application/json']
const TIMEOUTS: ReadonlySet<UpstreamFailureKind> = new Set(['head_timeout', 'idle_timeout', 'deadline'])

export function openMediaCalls(
  client: UpstreamClient,
  storage: Pick<TaskStorage, 'open'>,
  findAuthorizer: (channel: ChannelEntry) => Authorizer,
): MediaCalls {
  const send: MediaCalls['send'] = (request, options) =>
    request.body?.type === 'form'
      ? sendParts(request, request.body.parts, options, storage)
      : sendWhole(client, request, options)
  return {
    send: (request, options) =>
      request.authorizedAs === undefined
        ? send(request, options)
        : sendAuthorized(send, findAuthorizer(request.authorizedAs), request, options),
    async makeHeaders(request) {
      const { authorizedAs: channel, headers } = request
      if (channel === undefined) return headers
      return [...headers, ...(await authorize(findAuthorizer(channel), request)).headers]
    },
  }
}

/** Sends a request with the token of its channel, and once more with another one where that is refused. */
async function sendAuthorized(
  send: MediaCalls['send'],
  authorizer: Authorizer,
  request: MediaRequest,
  options: MediaSendOptions,
): Promise<MediaAnswer> {
  const attempt = async () => {
    const authorization = await authorize(authorizer, request)
    const answer = await send(
      { ...request, headers: [...request.headers, ...authorization.headers] },
      options,
    )
    return { authorization, answer }
  }
  const { authorization, answer } = await attempt()
  return authorizer.dropRefused(authorization, answer.status) ? (await attempt()).answer : answer
}

/** @throws MediaCallFailure where there is none: nothing was sent */
async function authorize(authorizer: Authorizer, { method, url }: MediaRequest): Promise<Authorization> {
  try {
    // Only chat protocols sign requests: a signature covers the body.
    return await authorizer.authorize({ method, url: new URL(url), contentType: '', body: NO_BYTES })
  } catch (error) {
    throw new MediaCallFailure((error as Error).message, { isSent: false, isTimeout: false })
  }
}

function sendWhole(
  client: UpstreamClient,
  { method, url, headers, body }: MediaRequest,
  { timeoutMs, maxAnswerBytes, signal }: MediaSendOptions,
): Promise<MediaAnswer> {
  const { origin: base, pathname, search } = new URL(url)
  const { origin } = parseOrigin(base)
  const bytes = toBytes(body)
  const fields = bytes === null ? headers : [...headers, JSON_TYPE]
  // A length of 0 where the method lets expect a body, none where it does not.
  const length = bytes?.length ?? (method === 'POST' || method === 'PUT' ? 0 : null)
  const head = renderHead(method, pathname + search, origin.authority, fields, length)
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let status = 0
    let received: ResponseHeaders | null = null
    const abort = () => {
      call.abort()
      reject(new MediaCallFailure('The call was given up.', { isSent: call.sent, isTimeout: false }))
    }
    const call = client.send(
      {
        origin,
        head,
        body: bytes,
        deadlineMs: timeoutMs,
        maxBodyBytes: maxAnswerBytes,
        // A request lost on a kept connection may have begun, and a submit is never sent twice: no kept connection is
        // used.
        onFreshConnection: method !== 'GET',
      },
      {
        onHead(code, fields) {
          status = code
          received = fields
        },
        onData: (data) => void chunks.push(Buffer.from(data)),
        onEnd() {
          signal?.removeEventListener('abort', abort)
          const header = (name: string) => received?.get(name) ?? null
          resolve({ status, header, body: Buffer.concat(chunks) })
        },
        onError(failure) {
          signal?.removeEventListener('abort', abort)
          reject(toMediaFailure(failure))
        },
      },
    )
    signal?.addEventListener('abort', abort, { once: true })
    if (signal?.aborted) abort()
  })
}

function toBytes(body: MediaRequest['body']): Buffer | null {
  if (body?.type === 'json_text') return body.bytes
  return body?.type === 'json' ? Buffer.from(JSON.stringify(body.value)) : null
}

const toMediaFailure = ({ message, sent, kind }: UpstreamFailure): MediaCallFailure =>
  new MediaCallFailure(message, { isSent: sent, isTimeout: TIMEOUTS.has(kind) })

async function sendParts(
  { url, headers }: MediaRequest,
  parts: readonly FormPart[],
  options: MediaSendOptions,
  storage: Pick<TaskStorage, 'open'>,
): Promise<MediaAnswer> {
  const fields = parts.map((part): FormField => {
    if ('value' in part) return part
    const { key, mediaType, bytes, name: fileName } = part.file
    return { name: part.name, fileName, mediaType, bytes, open: () => storage.open(key) }
  })
  try {
    return await sendForm({ url, headers, fields, ...options })
  } catch (error) {
    const { message, sent, isTimeout } = error as FormFailure
    throw new MediaCallFailure(message, { isSent: sent, isTimeout })
  }
}
