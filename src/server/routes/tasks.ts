/** Routes of media: what makes it, the tasks that do, and the files that come of them. */
import { type MusicTaskDeps, makeMusic, musicTasks } from '../../../pipelines/media/audio/music.ts'
import {
  type MakeSpeechDeps,
  makeSpeech,
  type SpeechTaskDeps,
  speechTasks,
} from '../../../pipelines/media/audio/speech.ts'
import { extractTranscript, type TranscriptDeps } from '../../../pipelines/media/audio/transcripts.ts'
import {
  cloneVoice,
  deleteVoice,
  type ListVoicesDeps,
  listVoices,
  showVoice,
} from '../../../pipelines/media/audio/voices.ts'
import type { DeleteRecordDeps } from '../../../pipelines/media/delete-record.ts'
import { type DeleteFilesDeps, deleteFiles } from '../../../pipelines/media/files/delete-files.ts'
import { type FilesDeps, files } from '../../../pipelines/media/files/files.ts'
import {
  editImages,
  type ImageTaskDeps,
  imageTasks,
  type MakeImagesDeps,
  makeImages,
} from '../../../pipelines/media/images/images.ts'
import { MAX_FORM_BYTES } from '../../../pipelines/media/inputs/read-form.ts'
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
import { type Family, UNCOUNTED } from './options.ts'

export type TaskRouteDeps = MakeImagesDeps &
  ImageTaskDeps &
  MakeVideoDeps &
  VideoTaskDeps &
  AvatarPresetsDeps &
  ClipDeps &
  MusicTaskDeps &
  MakeSpeechDeps &
  SpeechTaskDeps &
  ListVoicesDeps &
  TranscriptDeps &
  DeleteRecordDeps &
  DeleteFilesDeps &
  FilesDeps

export function taskRoutes(deps: TaskRouteDeps) {
  const images = imageTasks(deps)
  const videos = videoTasks(deps)
  const music = musicTasks(deps)
  const speech = speechTasks(deps)
  return {
    makeImages: makeImages(deps),
    editImages: { handler: editImages(deps), maxFormBytes: MAX_FORM_BYTES },
    listImages: images.list,
    showImage: images.show,
    cancelImage: images.cancel,
    deleteImageFiles: deleteFiles(deps, 'image'),
    makeVideo: makeVideo(deps),
    listVideos: videos.list,
    showVideo: videos.show,
    cancelVideo: videos.cancel,
    deleteVideoFiles: deleteFiles(deps, 'video'),
    registerAvatar: registerAvatar(deps),
    listAvatars: listAvatars(deps),
    listAvatarPresets: listAvatarPresets(deps),
    showAvatar: showAvatar(deps),
    deleteAvatar: deleteAvatar(deps),
    listClipTemplates: listClipTemplates(deps),
    listClipCategories: listClipCategories(deps),
    recogniseSubtitles: recogniseSubtitles(deps),
    showSubtitles: showSubtitles(deps),
    makeMusic: makeMusic(deps),
    listMusic: music.list,
    showMusic: music.show,
    cancelMusic: music.cancel,
    deleteMusicFiles: deleteFiles(deps, 'music'),
    makeSpeech: makeSpeech(deps),
    listSpeech: speech.list,
    showSpeech: speech.show,
    cancelSpeech: speech.cancel,
    deleteSpeechFiles: deleteFiles(deps, 'speech'),
    cloneVoice: cloneVoice(deps),
    listVoices: listVoices(deps),
    showVoice: showVoice(deps),
    deleteVoice: deleteVoice(deps),
    extractTranscript: extractTranscript(deps),
    readFile: { handler: files(deps), ...UNCOUNTED },
  } satisfies Family
}
