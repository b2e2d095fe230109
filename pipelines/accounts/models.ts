/** The endpoints of models, each as the stages of its pipeline. See docs/api-rules.md, "Finding the key". */
import { headerKey } from '../../src/core/keys/presented.ts'
import type { Handler } from '../../src/http/handler.ts'
import { type AuthenticateDeps, authenticate, type FindKey } from '../calls/authenticate.ts'
import { calls } from '../calls/pipeline.ts'
import { type RateDeps, rateLimit } from '../calls/rate-limit.ts'
import {
  answerWithCatalog,
  answerWithContentModel,
  answerWithContentModels,
  answerWithModel,
  answerWithModels,
  type CatalogDeps,
  type ModelsDeps,
} from './model-lists.ts'

export interface ListModelsDeps extends AuthenticateDeps, RateDeps, ModelsDeps {}

const headersOnly: FindKey = ({ header }) => headerKey(header)

/** `GET /v1/models` */
export const listModels = (deps: ListModelsDeps): Handler =>
  calls(authenticate(deps, { findKey: headersOnly }))
    .then(rateLimit(deps))
    .then(answerWithModels(deps))
    .toHandler()

/** `GET /v1/models/{model}` */
export const showModel = (deps: ListModelsDeps): Handler =>
  calls(authenticate(deps, { findKey: headersOnly }))
    .then(rateLimit(deps))
    .then(answerWithModel(deps))
    .toHandler()

/** `GET /v1beta/models` */
export const listContentModels = (deps: ListModelsDeps): Handler =>
  calls(authenticate(deps)).then(rateLimit(deps)).then(answerWithContentModels(deps)).toHandler()

/** `GET /v1beta/models/{model}` */
export const showContentModel = (deps: ListModelsDeps): Handler =>
  calls(authenticate(deps)).then(rateLimit(deps)).then(answerWithContentModel(deps)).toHandler()

/** `GET /api/v1/models/public`, open to everyone */
export const listPublicModels = (deps: CatalogDeps): Handler => calls(answerWithCatalog(deps)).toHandler()
