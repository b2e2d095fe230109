/** Videos, avatars and clips. */
import { z } from 'zod'
import { avatarList, avatarPresets, avatarRecord, avatarRequest, deletedRecord } from '../media/avatars.ts'
import {
  clipCategoryList,
  clipComposeRequest,
  clipSubtitleRequest,
  clipSubtitleSubmitted,
  clipSubtitles,
  clipSubtitleTask,
  clipTemplateList,
  clipTemplateQuery,
} from '../media/clips.ts'
import {
  avatarVideoRequest,
  lipsyncRequest,
  motionRequest,
  videoRequest,
  videoSubmitted,
  videoTask,
  videoTaskList,
} from '../media/videos.ts'
import { jsonAnswer, type RouteDescription } from './endpoint.ts'
import { createEndpoint, describeTaskEndpoints, idPath, OWN_MODEL, readEndpoint } from './media.ts'

const HTTP_ACCEPTED = 202
const HTTP_BAD_REQUEST = 400
const HTTP_NOT_FOUND = 404
const VIDEOS = 'Videos'
const AVATARS = 'Avatars'
const CLIPS = 'Clips'
const LINK = 'https://example.com'

const videoBody = z.union([
  videoRequest,
  avatarVideoRequest,
  lipsyncRequest,
  motionRequest,
  clipComposeRequest,
])
const ofClips = { tag: CLIPS, failureStatus: OWN_MODEL } as const
const COMPOSER = 'The key must be allowed to call `clip-compose`.'
const helperFailures = ['model_not_allowed', 'model_not_found', 'rate_limit_exceeded'] as const
const upstreamFailures = [
  'no_channel_available',
  'upstream_error',
  'upstream_unreachable',
  'upstream_timeout',
] as const

export const videoEndpoints: readonly RouteDescription[] = [
  {
    ...createEndpoint,
    name: 'makeVideo',
    tag: VIDEOS,
    failureStatus: { ...createEndpoint.failureStatus, model_not_found: [HTTP_BAD_REQUEST, HTTP_NOT_FOUND] },
    summary: 'Make a video: a task to poll.',
    details:
      'What is asked for depends on the model. An ordinary one takes `prompt` or `content`; `dh-avatar` takes `avatar`, and `audio_url` or `voice` and `text`; `dh-lipsync`, `-pro` and `-max` ' +
      'take `source_video_url` and `audio_url`; `dh-motion` takes `source_video_url` and portraits in `content`; ' +
      '`clip-compose` takes `video_url` and `asr_id`. Price x duration (12 seconds where none is given) is held; the ' +
      'seconds that were made are charged. A task that does not succeed is refunded.',
    body: { name: 'VideoRequest', schema: videoBody },
    example: { model: 'demo-video', prompt: 'The dough rises.', duration: 5 },
    answers: [jsonAnswer('VideoSubmitted', videoSubmitted)],
  },
  ...describeTaskEndpoints({
    names: ['listVideos', 'showVideo', 'cancelVideo', 'deleteVideoFiles'],
    tag: VIDEOS,
    kind: 'video',
    one: 'a video task',
    name: 'VideoTask',
    task: videoTask,
    list: videoTaskList,
  }),
  {
    ...createEndpoint,
    name: 'registerAvatar',
    tag: AVATARS,
    failureStatus: OWN_MODEL,
    summary: 'Register an avatar: ready in some minutes.',
    details: 'Billed by `dh-avatar-create`, for each call; refunded when it fails.',
    body: { name: 'AvatarRequest', schema: avatarRequest },
    example: { name: 'Ada', source_url: `${LINK}/ada.png` },
    answers: [jsonAnswer('Avatar', avatarRecord)],
  },
  {
    ...readEndpoint,
    name: 'listAvatars',
    tag: AVATARS,
    summary: "List the account's own avatars.",
    answers: [jsonAnswer('AvatarList', avatarList)],
    failures: ['rate_limit_exceeded'],
  },
  {
    ...readEndpoint,
    name: 'listAvatarPresets',
    tag: AVATARS,
    summary: 'List the avatars that everybody may use.',
    answers: [jsonAnswer('AvatarPresets', avatarPresets)],
    failures: ['rate_limit_exceeded', ...upstreamFailures],
  },
  {
    ...readEndpoint,
    name: 'showAvatar',
    tag: AVATARS,
    summary: 'Get an avatar.',
    pathParameters: idPath,
    answers: [jsonAnswer('Avatar', avatarRecord)],
    failures: ['not_found', 'rate_limit_exceeded'],
  },
  {
    ...readEndpoint,
    name: 'deleteAvatar',
    tag: AVATARS,
    summary: 'Delete an avatar that is ready or failed.',
    pathParameters: idPath,
    answers: [jsonAnswer('DeletedRecord', deletedRecord)],
    failures: ['invalid_request', 'not_found', 'task_not_cancellable', 'rate_limit_exceeded'],
  },
  {
    ...readEndpoint,
    ...ofClips,
    name: 'listClipTemplates',
    summary: 'List the templates of clips.',
    details: COMPOSER,
    query: clipTemplateQuery,
    answers: [jsonAnswer('ClipTemplateList', clipTemplateList)],
    failures: ['invalid_request', ...helperFailures, ...upstreamFailures],
  },
  {
    ...readEndpoint,
    ...ofClips,
    name: 'listClipCategories',
    summary: 'List the categories of templates.',
    details: COMPOSER,
    answers: [jsonAnswer('ClipCategoryList', clipCategoryList)],
    failures: [...helperFailures, ...upstreamFailures],
  },
  {
    ...createEndpoint,
    ...ofClips,
    name: 'recogniseSubtitles',
    summary: 'Recognise speech in a video, with times.',
    details: `The answer waits for at most 240 seconds. With async: a task to poll, answered with 202. ${COMPOSER}`,
    body: { name: 'ClipSubtitleRequest', schema: clipSubtitleRequest },
    example: { video_url: `${LINK}/talk.mp4` },
    answers: [
      jsonAnswer('ClipSubtitles', clipSubtitles),
      jsonAnswer('ClipSubtitleSubmitted', clipSubtitleSubmitted, HTTP_ACCEPTED),
    ],
  },
  {
    ...readEndpoint,
    ...ofClips,
    name: 'showSubtitles',
    summary: 'Get a recognition.',
    details: COMPOSER,
    pathParameters: idPath,
    answers: [jsonAnswer('ClipSubtitleTask', clipSubtitleTask)],
    failures: [...helperFailures, 'not_found'],
  },
]
