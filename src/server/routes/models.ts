/** Routes of models: the lists, and the generate-content methods of the model in the path. */
import type { Observable } from 'rxjs'
import {
  contentModel,
  contentModels,
  type ModelsDeps,
  model,
  models,
} from '../../../pipelines/accounts/models.ts'
import { type ChatDeps, chat } from '../../../pipelines/chat/chat.ts'
import { type CountTokensDeps, countTokens } from '../../../pipelines/chat/count-tokens.ts'
import { answer } from '../../../pipelines/stages/answer.ts'
import { authenticate, type Caller, type FindKey } from '../../../pipelines/stages/authenticate.ts'
import { pipeline } from '../../../pipelines/stages/pipeline.ts'
import { rateLimit } from '../../../pipelines/stages/rate-limit.ts'
import { headerKey } from '../../core/keys/presented.ts'
import type { Reply } from '../../http/handler.ts'
import type { RouteMethods } from '../../http/route.ts'
import { DIALECTS } from '../../protocols/registry.ts'
import type { Answered, RoutedPath } from './routed.ts'

export type ModelRouteDeps = ChatDeps & CountTokensDeps & ModelsDeps

type Answer = (caller: Caller) => Observable<Reply>

export interface ModelRoutes {
  readonly routed: readonly RoutedPath[]
  /** Handlers of a path below the two lists. */
  readonly at: (path: string) => RouteMethods | undefined
}

const headersOnly: FindKey = ({ header }) => headerKey(header)

/** A model's name may have slashes and colons, escaped or not. */
const GENERATE = /^\/v1beta\/models\/.+(?::|%3[Aa])(?:generateContent|streamGenerateContent)$/
const COUNT = /^\/v1beta\/models\/.+(?::|%3[Aa])countTokens$/
const CONTENT_MODEL = /^\/v1beta\/models\/.+$/
/** A method of the protocol that is not served is no part of a model's name. */
const OTHER_METHOD = /(?::|%3[Aa])[a-z]+[A-Z][A-Za-z]*$/
const MODEL = /^\/v1\/models\/.+$/

export function modelRoutes(deps: ModelRouteDeps, answered: Answered): ModelRoutes {
  const modelsOf = models(deps)
  const modelOf = model(deps)
  const contentModelsOf = contentModels(deps)
  const contentModelOf = contentModel(deps)
  const byHeader = (replies: Answer) => ({
    handler: pipeline(authenticate(deps, { findKey: headersOnly }), rateLimit(deps), answer(replies)),
  })
  const list = { GET: byHeader(({ known }) => modelsOf(known)) }
  const one = { GET: byHeader(({ known, request }) => modelOf(known, request.path)) }
  const listContent = { GET: answered(({ known, request }) => contentModelsOf(known, request.query)) }
  const oneContent = { GET: answered(({ known, request }) => contentModelOf(known, request.path)) }
  const generate = { POST: { handler: chat(deps, DIALECTS['generate-content']) } }
  const count = { POST: { handler: countTokens(deps, 'generate-content') } }
  return {
    routed: [
      { path: '/v1/models', methods: list },
      { path: '/v1/models/{model}', methods: one },
      { path: '/v1beta/models', methods: listContent },
      { path: '/v1beta/models/{model}', methods: oneContent },
      { path: '/v1beta/models/{model}:generateContent', methods: generate },
      { path: '/v1beta/models/{model}:streamGenerateContent', methods: generate },
      { path: '/v1beta/models/{model}:countTokens', methods: count },
    ],
    at(path) {
      if (GENERATE.test(path)) return generate
      if (COUNT.test(path)) return count
      if (CONTENT_MODEL.test(path)) return OTHER_METHOD.test(path) ? undefined : oneContent
      if (MODEL.test(path)) return one
      if (path === '/v1/models') return list
      return path === '/v1beta/models' ? listContent : undefined
    },
  }
}
