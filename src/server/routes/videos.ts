/** Routes below `/v1/videos`. */

import type { CancelDeps } from '../../../pipelines/media/cancel-task.ts'
import type { DeleteRecordDeps } from '../../../pipelines/media/delete-record.ts'
import { type DeleteFilesDeps, deleteFiles } from '../../../pipelines/media/files/delete-files.ts'
import {
  type AvatarPresetsDeps,
  deleteAvatar,
  listAvatarPresets,
  listAvatars,
  registerAvatar,
  showAvatar,
} from '../../../pipelines/media/videos/avatars.ts'
import {
  type ClipDeps,
  listClipCategories,
  listClipTemplates,
  recogniseSubtitles,
  showSubtitles,
} from '../../../pipelines/media/videos/clips.ts'
import {
  cancelVideo,
  listVideos,
  type MakeVideoDeps,
  makeVideo,
  type ReadVideosDeps,
  showVideo,
} from '../../../pipelines/media/videos/videos.ts'
import type { Answered, RoutedPath } from './routed.ts'

export type VideoRouteDeps = MakeVideoDeps &
  ReadVideosDeps &
  CancelDeps &
  DeleteRecordDeps &
  DeleteFilesDeps &
  AvatarPresetsDeps &
  ClipDeps

export function videoRoutes(deps: VideoRouteDeps, answered: Answered): readonly RoutedPath[] {
  return [
    {
      path: '/v1/videos/generations',
      methods: { POST: { handler: makeVideo(deps) }, GET: answered(listVideos(deps)) },
    },
    {
      path: '/v1/videos/generations/{id}',
      methods: { GET: answered(showVideo(deps)), DELETE: answered(cancelVideo(deps)) },
    },
    { path: '/v1/videos/generations/{id}/files', methods: { DELETE: answered(deleteFiles(deps, 'video')) } },
    {
      path: '/v1/videos/avatars',
      methods: { POST: { handler: registerAvatar(deps) }, GET: answered(listAvatars(deps)) },
    },
    { path: '/v1/videos/avatars/presets', methods: { GET: answered(listAvatarPresets(deps)) } },
    {
      path: '/v1/videos/avatars/{id}',
      methods: { GET: answered(showAvatar(deps)), DELETE: answered(deleteAvatar(deps)) },
    },
    { path: '/v1/videos/clip-templates', methods: { GET: answered(listClipTemplates(deps)) } },
    { path: '/v1/videos/clip-templates/categories', methods: { GET: answered(listClipCategories(deps)) } },
    { path: '/v1/videos/clip-subtitles', methods: { POST: { handler: recogniseSubtitles(deps) } } },
    { path: '/v1/videos/clip-subtitles/{id}', methods: { GET: answered(showSubtitles(deps)) } },
  ]
}
