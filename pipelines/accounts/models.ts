/** The endpoints of models, each as the stages of its pipeline. See docs/api-rules.md, "Finding the key". */
import { findHeaderKey } from '../../src/core/keys/presented.ts'
import type { Handler } from '../../src/http/handler.ts'
import { authenticate, type CallAccess, type FindKey } from '../calls/authenticate.ts'
import { calls } from '../calls/pipeline.ts'
import { rateLimit } from '../calls/rate-limit.ts'
import {
  answerWithCatalog,
  answerWithContentModel,
  answerWithContentModels,
  answerWithModel,
  answerWithModels,
  type CatalogDeps,
  type ModelsDeps,
} from './model-lists.ts'

const findKeyInHeaders: FindKey = ({ header }) => findHeaderKey(header)

/** `GET /v1/models` */
export const listModels = (access: CallAccess, deps: ModelsDeps): Handler =>
  calls(authenticate(access, { findKey: findKeyInHeaders }))
    .then(rateLimit(access))
    .then(answerWithModels(deps))
    .toHandler()

/** `GET /v1/models/{model}` */
export const showModel = (access: CallAccess, deps: ModelsDeps): Handler =>
  calls(authenticate(access, { findKey: findKeyInHeaders }))
    .then(rateLimit(access))
    .then(answerWithModel(deps))
    .toHandler()

/** `GET /v1beta/models` */
export const listContentModels = (access: CallAccess, deps: ModelsDeps): Handler =>
  calls(authenticate(access)).then(rateLimit(access)).then(answerWithContentModels(deps)).toHandler()

/** `GET /v1beta/models/{model}` */
export const showContentModel = (access: CallAccess, deps: ModelsDeps): Handler =>
  calls(authenticate(access)).then(rateLimit(access)).then(answerWithContentModel(deps)).toHandler()

/** `GET /api/v1/models/public`, open to everyone */
export const listPublicModels = (deps: CatalogDeps): Handler => calls(answerWithCatalog(deps)).toHandler()
