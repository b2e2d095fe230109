/** Which adapter speaks to a channel for a task: those of media, and that of answers in the background. */
import type { FindAdapter } from '../../../pipelines/tasks/ports.ts'
import { backgroundResponses } from '../../channels/chat/background.ts'
import { findMediaAdapter } from '../../channels/media/registry.ts'
import { readResponseFacts } from '../../protocols/responses/facts.ts'

const responses = backgroundResponses(readResponseFacts)

export const findTaskAdapter: FindAdapter = (protocol) =>
  protocol === 'responses' ? responses : findMediaAdapter(protocol)
