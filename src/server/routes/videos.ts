/** Routes below `/v1/videos`. */

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
  type MakeVideoDeps,
  makeVideo,
  type VideoTaskDeps,
  videoTasks,
} from '../../../pipelines/media/videos/videos.ts'
import type { RoutedPath } from './routed.ts'

export type VideoRouteDeps = MakeVideoDeps &
  VideoTaskDeps &
  DeleteRecordDeps &
  DeleteFilesDeps &
  AvatarPresetsDeps &
  ClipDeps

export function videoRoutes(deps: VideoRouteDeps): readonly RoutedPath[] {
  const videos = videoTasks(deps)
  return [
    {
      path: '/v1/videos/generations',
      methods: { POST: { handler: makeVideo(deps) }, GET: { handler: videos.list } },
    },
    {
      path: '/v1/videos/generations/{id}',
      methods: { GET: { handler: videos.show }, DELETE: { handler: videos.cancel } },
    },
    {
      path: '/v1/videos/generations/{id}/files',
      methods: { DELETE: { handler: deleteFiles(deps, 'video') } },
    },
    {
      path: '/v1/videos/avatars',
      methods: { POST: { handler: registerAvatar(deps) }, GET: { handler: listAvatars(deps) } },
    },
    { path: '/v1/videos/avatars/presets', methods: { GET: { handler: listAvatarPresets(deps) } } },
    {
      path: '/v1/videos/avatars/{id}',
      methods: { GET: { handler: showAvatar(deps) }, DELETE: { handler: deleteAvatar(deps) } },
    },
    { path: '/v1/videos/clip-templates', methods: { GET: { handler: listClipTemplates(deps) } } },
    { path: '/v1/videos/clip-templates/categories', methods: { GET: { handler: listClipCategories(deps) } } },
    { path: '/v1/videos/clip-subtitles', methods: { POST: { handler: recogniseSubtitles(deps) } } },
    { path: '/v1/videos/clip-subtitles/{id}', methods: { GET: { handler: showSubtitles(deps) } } },
  ]
}
