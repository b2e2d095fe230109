/** Routes of models: the lists, and the generate-content methods of the model in the path. */

import type { ModelsDeps } from '../../../pipelines/accounts/model-lists.ts'
import {
  listContentModels,
  listModels,
  showContentModel,
  showModel,
} from '../../../pipelines/accounts/models.ts'
import { chat } from '../../../pipelines/chat/chat.ts'
import { countTokens } from '../../../pipelines/chat/count-tokens.ts'
import type { RouteMethods } from '../../http/route.ts'
import { DIALECTS } from '../../protocols/registry.ts'
import type { CallGroups } from '../gateway/call-groups.ts'
import type { RoutedPath } from './routed.ts'

interface ModelRoutes {
  readonly routed: readonly RoutedPath[]
  /** Handlers of a path below the two lists. */
  readonly at: (path: string) => RouteMethods | undefined
}

/** A model's name may have slashes and colons, escaped or not. */
const GENERATE = /^\/v1beta\/models\/.+(?::|%3[Aa])(?:generateContent|streamGenerateContent)$/
const COUNT = /^\/v1beta\/models\/.+(?::|%3[Aa])countTokens$/
const CONTENT_MODEL = /^\/v1beta\/models\/.+$/
/** A method of the protocol that is not served is no part of a model's name. */
const OTHER_METHOD = /(?::|%3[Aa])[a-z]+[A-Z][A-Za-z]*$/
const MODEL = /^\/v1\/models\/.+$/

export function modelRoutes(groups: CallGroups, models: ModelsDeps): ModelRoutes {
  const list = { GET: { handler: listModels(groups.access, models) } }
  const one = { GET: { handler: showModel(groups.access, models) } }
  const listContent = { GET: { handler: listContentModels(groups.access, models) } }
  const oneContent = { GET: { handler: showContentModel(groups.access, models) } }
  const generate = { POST: { handler: chat(groups, DIALECTS['generate-content']) } }
  const count = { POST: { handler: countTokens(groups, 'generate-content') } }
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
