import { App, type HttpResponse, SSLApp, type us_socket, us_socket_local_port } from 'uWebSockets.js'
import {
  GENERATE_CONTENT_BODY,
  generateContentWords,
  MESSAGES_BODY,
  messagesWords,
  type StreamWords,
} from './foreign-replies.ts'
import { type Beating, Metronome } from './metronome.ts'
import {
  chunkAt,
  DONE,
  isWhole,
  type Pace,
  type Profile,
  readProfile,
  SMALL_BODY,
  usageChunk,
} from './replies.ts'

/**
 * The process of the bench upstream: a provider that answers at once and costs little.
 *
 * Started by start.ts, which passes one JSON argument: {@link UpstreamSettings}. Sends `{port, tlsPort}` to its
 * parent when it listens, and ends with it.
 */
export interface UpstreamSettings {
  burst: Pace
  brief: Pace
  paced: Pace
  held: Pace
  tls: { certFile: string; keyFile: string } | null
  /** 0 takes a free port. */
  port: number
}

const settings = JSON.parse(process.argv[2]!) as UpstreamSettings
const metronomes = {
  brief: new Metronome(settings.brief.perSecond),
  paced: new Metronome(settings.paced.perSecond),
  held: new Metronome(settings.held.perSecond),
}
/** Some gateways list the models of an upstream before they use it. */
const MODELS_BODY = JSON.stringify({
  object: 'list',
  data: [{ id: 'bench', object: 'model', owned_by: 'bench' }],
})
const USAGE_WANTED = '"include_usage":true'

const startStream = (res: HttpResponse): void => {
  res.writeStatus('200 OK')
  res.writeHeader('content-type', 'text/event-stream; charset=utf-8')
  res.writeHeader('cache-control', 'no-cache')
}

/** The beats of a stream and its end, and the answer without a stream. */
interface Words {
  whole: string
  at: StreamWords
  end: (chunks: number) => string
}

const native = (usage: boolean): Words => ({
  whole: SMALL_BODY,
  at: chunkAt,
  end: (chunks) => (usage ? usageChunk(chunks) + DONE : DONE),
})
const foreign = (at: StreamWords, whole: string): Words => ({ whole, at, end: () => '' })

/** uWebSockets.js joins up to 16 KiB into one packet; beyond that each write is a packet. */
const CHUNKS_PER_CORK = 50

/** Every chunk is one frame, and one packet has many frames, as from a provider that is faster than the client. */
const burst = (res: HttpResponse, { chunks }: Pace, words: Words): void => {
  for (let from = 0; from < chunks; from += CHUNKS_PER_CORK)
    res.cork(() => {
      if (from === 0) startStream(res)
      const to = Math.min(chunks, from + CHUNKS_PER_CORK)
      for (let i = from; i < to; i++) res.write(words.at(i, chunks))
      if (to === chunks) res.end(words.end(chunks))
    })
}

class PacedStream implements Beating {
  readonly #res: HttpResponse
  readonly #chunks: number
  readonly #words: Words
  #sent = 0
  #gone = false

  constructor(res: HttpResponse, chunks: number, words: Words) {
    this.#res = res
    this.#chunks = chunks
    this.#words = words
  }

  abort(): void {
    this.#gone = true
  }

  /** One chunk; with the last one the end. */
  beat(): boolean {
    if (this.#gone) return false
    const last = this.#sent === this.#chunks - 1
    this.#res.cork(() => {
      if (this.#sent === 0) startStream(this.#res)
      this.#res.write(this.#words.at(this.#sent++, this.#chunks))
      if (last) this.#res.end(this.#words.end(this.#chunks))
    })
    return !last
  }
}

const answer = (
  res: HttpResponse,
  profile: Profile | null,
  words: Words,
  onAbort: (abort: () => void) => void,
): void => {
  if (profile === null) {
    res.cork(() =>
      res.writeStatus('400 Bad Request').end('{"error":{"message":"the prompt has no mark of the bench"}}'),
    )
  } else if (isWhole(profile)) {
    res.cork(() => res.writeHeader('content-type', 'application/json').end(words.whole))
  } else if (profile === 'burst') {
    burst(res, settings.burst, words)
  } else {
    const stream = new PacedStream(res, settings[profile].chunks, words)
    onAbort(() => stream.abort())
    stream.beat()
    metronomes[profile].add(stream)
  }
}

type Read = (body: Buffer) => { profile: Profile | null; words: Words }

const readNative: Read = (body) => ({
  profile: readProfile(body),
  words: native(body.includes(USAGE_WANTED)),
})
const readMessages: Read = (body) => ({
  profile: readProfile(body),
  words: foreign(messagesWords, MESSAGES_BODY),
})
const readGenerateContent: Read = (body) => ({
  profile: readProfile(body),
  words: foreign(generateContentWords, GENERATE_CONTENT_BODY),
})

const handle = (res: HttpResponse, read: Read): void => {
  let aborted = (): void => {}
  const received: Buffer[] = []
  res.onAborted(() => aborted())
  res.onData((piece, last) => {
    const bytes = Buffer.from(piece) // a view that is valid until this callback returns
    if (last) {
      const { profile, words } = read(received.length > 0 ? Buffer.concat([...received, bytes]) : bytes)
      answer(res, profile, words, (abort) => {
        aborted = abort
      })
    } else received.push(Buffer.from(bytes))
  })
}

type Server = ReturnType<typeof App>

const listen = (server: Server, wanted: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.post('/v1/chat/completions', (res) => handle(res, readNative))
    server.post('/v1/messages', (res) => handle(res, readMessages))
    server.post('/v1beta/models/*', (res) => handle(res, readGenerateContent))
    server.get('/v1/models', (res) => {
      res.writeHeader('content-type', 'application/json').end(MODELS_BODY)
    })
    server.listen('127.0.0.1', wanted, (socket) => {
      if (!socket) return reject(new Error(`the bench upstream cannot listen on port ${wanted}`))
      resolve(us_socket_local_port(socket as unknown as us_socket)) // A listen socket is a socket; the types omit it.
    })
  })

const tls = settings.tls
const port = await listen(App(), settings.port)
const tlsPort = tls
  ? await listen(SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile }), 0)
  : null
process.send!({ port, tlsPort })
process.once('disconnect', () => process.exit(0))
